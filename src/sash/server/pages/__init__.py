"""The HTML pages, rendered as text. They import no route and no middleware."""
