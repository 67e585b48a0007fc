"""Settings of the documentation site, built strictly: a broken reference fails the build."""

from unswayed import __version__

project = "unswayed"
author = "The unswayed developers"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "unswayed"
html_static_path: list[str] = []
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False
suppress_warnings = ["myst.header"]
