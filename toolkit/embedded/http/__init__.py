"""The node's outside: pure handlers from a request to an answer, and a thin server around them."""
