"""Committed transactions stored on disk: what is stored, how a sync writes it, how it is read back."""
