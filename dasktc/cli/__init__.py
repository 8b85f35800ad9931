"""Groups of commands of the command line, and options that several of them have."""
