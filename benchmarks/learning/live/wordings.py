"""Other wordings of the templates' requests, written without knowledge of how requests are compared."""

WORDINGS: dict[str, tuple[str, str, str]] = {
    "cancel_meeting": (
        "Something came up: could you take the next appointment I have with {0} off my calendar?",
        "I can't make it when {0} and I are due to meet next. Scrap that one, leave any later ones.",
        "Calendar: drop the soonest event with {0}.",
    ),
    "move_meeting": (
        "Could '{0}' start at {1} rather than when it does now?",
        "{1} suits me better for '{0}', so change my calendar accordingly.",
        "Calendar change. Event: {0}. Now begins: {1}.",
    ),
    "book_meeting": (
        "I'd like to sit down with {0} for {3} minutes on {2}. Could you put that in the calendar as '{1}'?",
        "Calendar entry, please: {2}, {3} min, with {0}, title '{1}'.",
        "Starting {2}, block {3} minutes for {0} and me. The name of the event is {1}.",
    ),
    "forward_mail": (
        "Would you mind sending {1} a copy of that message in my inbox titled '{0}'?",
        "There's a mail with '{0}' in the subject line. Get it over to {1}.",
        "FWD to {1}: {0}",
    ),
    "reply_to_latest": (
        "Could you write back to {0} for me? Take the most recent message they sent and respond '{1}'.",
        "'{1}' - that's my response to the newest mail I got from {0}, send it off.",
        "{0} wrote to me; get back to them on the most recent one, saying just this: {1}.",
    ),
    "delete_mail": (
        "Can you get rid of that '{0}' message in my inbox?",
        "'{0}' is just cluttering up my mailbox. Bin that mail.",
        "Trash this mail: {0}",
    ),
    "reassign_customer": (
        "Who looks after {0}? It should be {1} now, so please make them responsible for that client.",
        "Account {0}: new owner is {1}.",
        "I want our client {0} in the hands of {1}. Change who the account is assigned to.",
    ),
    "lose_customer": (
        "In the customer records, would you please change what it says for {0}? The status is '{1}'.",
        "It's official, {0} is {1}. Make sure our customer data says so.",
        "Customer status update: {1}, for {0}.",
    ),
    "new_customer": (
        "Can we get a company called {0} into our customer records? {2} will look after them; a {1} is what they want.",
        "{2} just picked up a prospect that isn't in the system yet: {0}, keen on a {1}. Put them in.",
        "Create customer. Owner: {2}. Product: {1}. Name: '{0}'.",
    ),
    "complete_task": (
        "Would you be so kind as to tick off '{0}' on the task board? It belongs under Completed now.",
        "Finally finished with '{0}'! Shift that one over to Completed.",
        "Task board: {0} -> Completed",
    ),
    "empty_list": (
        "Please go through {1} and, wherever a task there belongs to {0}, shift it over to {2}.",
        "Task board, {0} only: whatever sits in '{1}' now should be in '{2}'.",
        "{2} is where I want to see the whole lot of tasks that are assigned to {0} and currently listed under {1}.",
    ),
    "new_task": (
        "I have some work for {1}, would you add it to their tasks? It's called '{0}' and has to be finished by {2}.",
        "By {2} I need '{0}' taken care of. Put it on the board and assign it to {1}.",
        "New to-do. Assignee: {1}. Deadline: {2}. Title: {0}",
    ),
    "cancel_last_order": (
        "Is it possible to call off the most recent purchase that {0} made with us? Please do.",
        "Just got off the phone with {0}: they've changed their mind about their newest order, so stop that one.",
        "Customer {0}, newest order: void it.",
    ),
    "refund": (
        "Could you pay back {2} on the {1} that {0} bought from us?",
        "About the {1} order: we owe {0} some money on it. Give them {2}.",
        "Reimbursement of {2}, customer {0}, order: {1}.",
    ),
    "redirect_order": (
        "We need to deliver to '{2}' when the {1} for {0} goes out, would you correct that on their order?",
        "{0} called, they want their {1} dropped off at {2} and not at the place we have on file for that order.",
        "New shipping address {2}. Customer: {0}. Order: the {1}.",
    ),
    "plot": (
        "How did the {0} develop? Draw me a chart, please: start with {1}, stop at {2}, type {3}.",
        "{1} through {2}, {0}, {3} chart please.",
        "Show me what happened with our {0} in a {3} graph whose first day is {1} and whose last day is {2}.",
    ),
    "traffic_alarm": (
        "How many visits did our site get on {1}? If under {2}, mail {0} about it, subject line 'Traffic drop'.",
        "{0} has to get a mail titled 'Traffic drop' in case the site didn't reach {2} visits on {1}.",
        "Site visits, {1}: look them up. Anything less than {2} and you mail {0}. Subject line: 'Traffic drop'.",
    ),
    "share": (
        "Could you give {1} access to '{0}'?",
        "I've got a document, {0}, that {1} can't open yet. Sort that out so they can.",
        "Access for {1}: '{0}'.",
    ),
}
