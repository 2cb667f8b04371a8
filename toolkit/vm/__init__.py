"""The Move machine without I/O: bytecode, values, gas and transactions, as a node runs them."""
