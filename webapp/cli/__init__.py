"""The `kernelwright` command. Django is imported only by the subcommands that serve the web."""
