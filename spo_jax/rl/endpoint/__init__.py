"""Any endpoint with the interface of OpenAI: a generator, and the requests it sends."""
