"""Running a study: what is read where, how it is kept on disk, and the proof that it is whole."""
