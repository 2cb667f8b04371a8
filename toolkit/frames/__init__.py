"""Typed DataFrames from decoded responses, without I/O. Frames that are passed in are never modified."""
