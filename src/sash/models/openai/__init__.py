"""Models of OpenAI, Azure and compatible servers, by the official SDK. It imports no other provider."""
