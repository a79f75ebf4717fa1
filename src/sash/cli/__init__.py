"""The command line `sash`: it parses options, calls the service and prints. No other package imports it."""
