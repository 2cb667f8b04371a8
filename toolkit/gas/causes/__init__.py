"""Causes of steps: what is read, what transactions wrote, and what follows from both."""
