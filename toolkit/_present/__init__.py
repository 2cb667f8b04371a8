"""How anything is shown or written: text, HTML of notebooks, files. Imports nothing of the package."""
