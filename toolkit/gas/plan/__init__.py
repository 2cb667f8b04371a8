"""Plans: what a study asks for, the versions that it reads on a node, and what a run would send."""
