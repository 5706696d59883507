"""Turn files into texts to translate, and translations into files. This package knows no HTTP and no models."""
