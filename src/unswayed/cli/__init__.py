"""The `unswayed` command: one module for each sub-command, imported when that sub-command is called."""
