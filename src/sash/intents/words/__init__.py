"""The words of a language: lexicon, tokens and phrases. It imports no other intents."""
