"""`dasktc bench papers`: what the five papers show, measured again on graphs that this machine makes or holds."""
