"""LibreTranslate's application for gunicorn, made as the wsgi.py of its own repository makes it.

Runs in LibreTranslate's environment, configured by the variables LT_*.
"""

import sys

from libretranslate import main

sys.argv = ["--wsgi"]
app = main()
