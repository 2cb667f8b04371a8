"""How anything is shown or written: text, tables, sentences, files. Imports nothing of the package."""
