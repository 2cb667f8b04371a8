"""Settings of the documentation site; `docs/build.py` calls Sphinx with them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpydoc.docscrape_sphinx
from jinja2.sandbox import SandboxedEnvironment
from sphinx_gallery.scrapers import matplotlib_scraper

import toolkit

if TYPE_CHECKING:
    from jinja2 import BaseLoader

project = "ledger-toolkit"
author = "the ledger-toolkit developers"
copyright = "the ledger-toolkit developers, Apache-2.0"  # noqa: A001 - Sphinx reads this name
version = release = toolkit.__version__

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
templates_path = ["_templates"]
exclude_patterns = ["**/jupyter_execute"]
suppress_warnings = [
    "config.cache",  # the functions below cannot be pickled, so the environment is read again
    "sphinx_gallery.space_in_filename",  # no script has one; a folder above the repository may
]

# Pages. Notebooks are shown with their stored outputs, which the tests compare with what the cells return.
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # nothing is loaded from another host
nb_mime_priority_overrides = [
    ("html", "text/html", 0),
    ("html", "application/vnd.jupyter.widget-view+json", None),
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
myst_links_external_new_tab = True

# Reference.
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc shows the types of parameters
autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "model_config, model_post_init"}
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the class template lists them
default_role = "py:obj"
# Docstrings name parameters and modules of others between single backticks, which link only if the name is documented.
nitpick_ignore_regex = [("py:obj", ".*"), ("py:class", "Field|toolkit.embedded.framework._values.EventModule")]
environments: dict[type, SandboxedEnvironment] = {}


def environment(loader: BaseLoader) -> SandboxedEnvironment:
    """Return the environment of templates for a kind of loader."""
    return environments.setdefault(type(loader), SandboxedEnvironment(loader=loader))


# numpydoc makes an environment per docstring, and so compiles its template 2,000 times: a sixth of the whole build.
numpydoc.docscrape_sphinx.SandboxedEnvironment = environment


def figure_once(block: Any, variables: Any, settings: Any) -> str:
    """Save each figure of the gallery once, sharp enough for any screen."""
    return matplotlib_scraper(block, variables, settings, dpi=180)


# Gallery: scripts read the sample run beside them, so their folder is the one of the repository.
sphinx_gallery_conf = {
    "examples_dirs": os.environ.get("LEDGER_TOOLKIT_GALLERY", str(Path(__file__).parent / "gallery")),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "write_computation_times": False,
    "show_memory": False,
    "notebook_extensions": set(),
    "download_all_examples": False,
    "min_reported_time": 1_000,
    "image_scrapers": (figure_once,),
    "thumbnail_size": (800, 400),
    "capture_repr": (),
    "matplotlib_animations": False,
    "doc_module": ("toolkit",),
    "backreferences_dir": None,
    "remove_config_comments": True,
    "copyfile_regex": r"",
}

html_theme = "pydata_sphinx_theme"
html_title = "ledger-toolkit"  # a longer one is wider than a phone
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_js_files = ["site.js"]
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {
    page: [] for page in ("index", "course/**", "tutorials/**", "gallery/**", "project/comparison", "reference/columns")
}
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_depth": 2,
    "collapse_navigation": True,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
