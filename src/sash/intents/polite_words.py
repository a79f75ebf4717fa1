"""The polite words that may precede a request."""

# A pattern for "hey sash, please can you ". It also matches an empty text.
POLITE_PREFIX = r"(?:(?:hey |ok |okay )?sash\W+)?(?:(?:please|bitte)\W+)?(?:can you |could you |kannst du )?"
