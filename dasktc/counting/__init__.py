"""From blocks to answers."""
