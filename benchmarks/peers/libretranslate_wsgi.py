"""LibreTranslate's application for gunicorn, built like in the wsgi.py of its repository.

It runs in LibreTranslate's environment, configured by variables LT_*.
"""

import sys

from libretranslate import main

sys.argv = ["--wsgi"]
app = main()
