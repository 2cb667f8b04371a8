"""How anything is shown or written: text, messages, HTML of notebooks, files. Imports nothing of the package."""
