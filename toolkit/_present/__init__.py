"""How everything is shown or written: text, messages, HTML in notebooks, files. Imports nothing else of the package."""
