"""The tools we ship. Each toolkit is built from what it works on; running its tools is the execution room's job."""
