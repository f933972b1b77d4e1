"""Requests to a small library of tools, labelled by whether one of the tools can serve them.

The lists for tuning set the detector's thresholds; those for judging were written afterwards and set nothing.
"""

from datetime import date

from journeyman import tool
from journeyman.tools.library import AnyTool


@tool
def create_task(title: str, due: date | None = None, priority: str = "medium") -> str:
    """Create a task on the to-do list. Use when somebody wants to remember or plan something to do."""
    return title


@tool
def query_tasks(text: str = "", status: str = "", due_before: date | None = None) -> str:
    """List and filter the tasks on the to-do list by text, status, priority, due date or tags."""
    return text


@tool
def update_task(task: str, status: str = "", title: str = "", due: date | None = None) -> str:
    """Change a task: mark it as done, rename it, move its due date or change its priority."""
    return task


@tool
def delete_task(task: str) -> str:
    """Delete a task from the to-do list for good."""
    return task


@tool
def web_search(query: str) -> str:
    """Search the web and return the best pages with their titles and addresses."""
    return query


@tool
def read_file(path: str) -> str:
    """Read a text file from the disk and return its content."""
    return path


@tool
def send_email(to: str, subject: str, body: str) -> str:
    """Send an email message to a person."""
    return to


@tool
def create_calendar_event(title: str, start: str, minutes: int = 60) -> str:
    """Put a meeting or another event into the calendar."""
    return title


@tool
def get_weather(city: str) -> str:
    """The current weather and the forecast for a city: temperature, rain and wind."""
    return city


@tool
def convert_currency(amount: float, source: str, target: str) -> str:
    """Convert an amount of money from one currency to another at today's exchange rate."""
    return f"{amount}"


@tool
def get_current_time(zone: str = "UTC") -> str:
    """The current date and time in a time zone."""
    return zone


@tool
def translate_text(text: str, language: str) -> str:
    """Translate a text into another language."""
    return text


TOOLS: list[AnyTool] = [
    create_task,
    query_tasks,
    update_task,
    delete_task,
    web_search,
    read_file,
    send_email,
    create_calendar_event,
    get_weather,
    convert_currency,
    get_current_time,
    translate_text,
]

TUNING_SERVED = [
    "Create a task to buy milk tomorrow",
    "Remind me to call the plumber on Friday",
    "Add 'renew passport' to my to-do list",
    "I need to remember to water the plants",
    "Show me all open tasks",
    "What is still on my list for this week?",
    "Which tasks are overdue?",
    "List everything with high priority",
    "Mark the groceries task as done",
    "Move the deadline of the report to Monday",
    "Rename the task 'taxes' to 'tax return'",
    "I have finished the presentation task",
    "Delete the task about the old printer",
    "Remove 'buy stamps' from my to-dos",
    "Search the web for reviews of folding bikes",
    "Find pages about the history of tea",
    "Look up online who invented the zip fastener",
    "Read the file notes.txt",
    "What does the file config.yaml contain?",
    "Show me the content of /tmp/report.md",
    "Send an email to Ana that I will be late",
    "Mail the minutes to bob@example.org",
    "Write a message to Carla by email about the invoice",
    "Schedule a meeting with the team on Tuesday at ten",
    "Put the dentist into my calendar for 3 May at 9:00",
    "Block an hour on Thursday afternoon for planning",
    "What is the weather in Oslo?",
    "Will it rain in Lisbon tomorrow?",
    "How cold is it in Helsinki right now?",
    "How many euros are 250 dollars?",
    "Convert 1,000 yen to pounds",
    "What time is it in Tokyo?",
    "What is today's date?",
    "Translate 'good morning' into French",
    "How do you say thank you in Japanese?",
    "Give me the German version of this sentence: the door is open",
]

TUNING_UNSERVED = [
    "Retrieve my stock portfolio performance for Q3 2024",
    "Book me a flight to Paris",
    "Transfer 100 dollars to Bob",
    "Order a large pizza with mushrooms",
    "Turn off the lights in the living room",
    "Play some jazz music",
    "Call me a taxi to the airport",
    "Restart the production server",
    "Resize this photo to 800 pixels",
    "Reserve a table for two at an Italian restaurant",
    "Track my parcel from the post office",
    "Print ten copies of the contract",
    "Check my blood pressure readings",
    "Renew my library books",
    "Pay the electricity bill",
    "Unlock the front door",
    "Transcribe this audio recording",
    "Draw a picture of a castle",
    "Deploy the new version to Kubernetes",
    "Run the unit tests of the project",
    "Merge the pull request number 42",
    "Compress this video",
    "Buy two tickets for the concert",
    "Start the washing machine",
    "Set the thermostat to 21 degrees",
    "Scan the network for open ports",
    "Generate an invoice as PDF for customer 4711",
    "Record my running distance of today",
    "Calculate the square root of 1,764",
    "Plot a bar chart of the monthly sales",
    "Query the customer database for unpaid orders",
    "Cancel my gym membership",
    "Take a screenshot of my desktop",
    "Follow that account on social media",
    "Back up my phone",
    "Solve the equation 3x + 7 = 22",
]

SERVED = [
    "Add a task to clean the windows",
    "Make a to-do: phone the insurance by Wednesday",
    "Please note down that I have to return the library books",
    "What do I have to do today?",
    "List my finished tasks",
    "Find the tasks that mention the wedding",
    "Set the status of the laundry task to completed",
    "Change the priority of the tax task to high",
    "Postpone the garden task to next month",
    "Erase the task about the bike repair",
    "Search the internet for cheap hotels in Rome",
    "Google the opening hours of the city museum",
    "Open the file todo.md and tell me what it says",
    "Read me the text in readme.txt",
    "Email Paul the address of the restaurant",
    "Send a message to support@example.org saying that the order is late",
    "Add lunch with Nina to my calendar on Sunday at noon",
    "Set up a meeting with legal tomorrow at 15:00",
    "What is the temperature in Madrid?",
    "Do I need an umbrella in Dublin today?",
    "Change 80 Swiss francs into Danish crowns",
    "What is the time in New York now?",
    "Translate this paragraph to Spanish",
    "What does 'Guten Appetit' mean in English?",
]

UNSERVED = [
    "Rent a car in Seville for three days",
    "Withdraw fifty euros from my savings",
    "Switch on the coffee machine",
    "Show me my heart rate of last night",
    "Increase the volume of the speakers",
    "Ship the parcel to Canada",
    "Rotate this image by ninety degrees",
    "Restore the database from last night's backup",
    "Hire a gardener for Saturday",
    "Charge the customer's credit card",
    "Vacuum the living room",
    "Remove the background noise from my podcast",
    "Sell all my shares of the airline",
    "Create a slide deck from these bullet points",
    "Compile the firmware",
    "Sign the contract electronically",
    "Navigate to the nearest petrol station",
    "Block this phone number",
    "Order new ink for the printer",
    "Train a model on the sales figures",
    "Feed the fish",
    "Revoke the access token of the intern",
    "Book a doctor for a check-up",
    "Simulate the bridge under heavy load",
]
