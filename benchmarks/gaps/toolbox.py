"""The tools of a researcher, as somebody would declare them."""

from journeyman import tool


@tool(read_only=True)
def web_search(query: str, limit: int = 5) -> str:
    """Search the web and return titles, addresses and excerpts of the best pages. Use for facts you do not know."""
    return query


@tool(read_only=True)
def fetch_page(url: str) -> str:
    """Fetch a web page and return its readable text. Use when a page's address is known."""
    return url


@tool(read_only=True)
def read_file(path: str) -> str:
    """Read a text file from the working folder."""
    return path


@tool(read_only=True)
def get_current_time(timezone: str = "UTC") -> str:
    """The current date and time in a time zone."""
    return timezone


@tool(read_only=True)
def search_memory(query: str, top_k: int = 5) -> str:
    """Search documents that were stored earlier. Use before searching the web."""
    return query


@tool(risk="reversible")
def store_memory(content: str) -> str:
    """Store a document, so that it can be found later."""
    return content


TOOLS = (web_search, fetch_page, read_file, get_current_time, search_memory, store_memory)
