# Grades a class in a container: the run command, with its limits, is in notebooks/README.md.
FROM python:3.12-slim
COPY . /toolkit
RUN pip install --no-cache-dir '/toolkit[notebook]'
# The only folder that can be written to, besides /grades.
ENV HOME=/tmp
WORKDIR /tmp
ENTRYPOINT ["ledger-toolkit", "grade", "/submitted", "--out", "/grades"]
