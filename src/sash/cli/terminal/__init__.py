"""Reading from and printing to a terminal or a pipe. It imports no command."""
