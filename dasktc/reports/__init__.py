"""What a count shows of itself: its output files, the HTML report, charts and plots."""
