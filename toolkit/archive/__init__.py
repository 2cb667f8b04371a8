"""Archives of committed transactions on disk: their tables, the sync that writes them, and reading them back."""
