"""Why gas moved: the reads that tell, what was written, and what follows from it."""
