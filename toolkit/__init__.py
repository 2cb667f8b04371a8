"""Typed frames, gas studies and an embedded node for the REST interface of a Move ledger."""
