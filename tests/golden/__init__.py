"""Golden files: the wire formats, stored data and help texts as they are today."""
