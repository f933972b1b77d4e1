"""Research: search, read, recall, and answers whose citations are checked against what was really read.

The agent that uses these tools, and its reports, are put together in ``journeyman.Researcher``.
"""

from journeyman.toolkits.research.citations import CheckedText as CheckedText
from journeyman.toolkits.research.citations import check_citations as check_citations
from journeyman.toolkits.research.engines import HttpSearch as HttpSearch
from journeyman.toolkits.research.engines import SearchEngine as SearchEngine
from journeyman.toolkits.research.engines import SearchResult as SearchResult
from journeyman.toolkits.research.engines import searxng as searxng
from journeyman.toolkits.research.sources import Source as Source
from journeyman.toolkits.research.sources import results_of as results_of
from journeyman.toolkits.research.sources import sources_of as sources_of
from journeyman.toolkits.research.tools import ResearchTools as ResearchTools
