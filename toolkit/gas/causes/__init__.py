"""Causes of steps: the reads, what transactions wrote, and what follows from it."""
