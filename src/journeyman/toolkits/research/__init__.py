"""Research: search, read, recall, and answers whose citations are checked against what was really read.

The agent that uses these tools, and its reports, are put together in ``journeyman.Researcher``.
"""

from journeyman.toolkits.research.citations import CheckedText, check_citations
from journeyman.toolkits.research.engines import HttpSearch, SearchEngine, SearchResult, searxng
from journeyman.toolkits.research.sources import Source, results_of, sources_of
from journeyman.toolkits.research.tools import ResearchTools

__all__ = [
    "CheckedText",
    "HttpSearch",
    "ResearchTools",
    "SearchEngine",
    "SearchResult",
    "Source",
    "check_citations",
    "results_of",
    "searxng",
    "sources_of",
]
