"""Typed DataFrames from decoded answers, without I/O. Frames that are passed in are never modified."""
