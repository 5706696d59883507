"""What a model is not shown, and how it comes back into a translation: HTML tags, URLs, placeholders, emoji.

`document.parse` takes HTML apart into passages, `placeholders.protect` takes what is no language out of a text;
`restoration.restore` and `Document.render` put both back where the aligned words went.
"""
