"""The API's reference: from the OpenAPI document to a page."""
