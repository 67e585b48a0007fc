"""Settings of the documentation site, built strictly: a broken reference fails the build."""

from unswayed import __version__

project = "unswayed"
author = project_copyright = "The unswayed developers"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "unswayed"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_js_files = ["accessible.js"]
autodoc_typehints = "none"  # numpy spells array types at length; the docstrings say shapes
python_maximum_signature_line_length = 90
default_role = "code"  # single backticks in docstrings are code
autodoc_member_order = "bysource"
nitpicky = False
suppress_warnings = ["myst.header"]
