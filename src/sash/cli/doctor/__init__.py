"""The checks of `sash doctor`: they change nothing. They import no command."""
