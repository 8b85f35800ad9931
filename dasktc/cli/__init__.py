"""The command line: command groups, and the options that several commands share."""
