"""How results are shown and written: text, messages, HTML and files. Imports no other part of the toolkit."""
