"""Gas studies: observations over ledger versions, steps, causes, comparisons."""
