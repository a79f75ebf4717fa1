"""The scenes that `sash demo` plays. They use the public engine and no settings, and import no command."""
