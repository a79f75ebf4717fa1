"""Models of OpenAI, Azure and compatible servers, through the official SDK."""
