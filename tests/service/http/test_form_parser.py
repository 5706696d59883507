"""Names of files in forms, as clients encode them."""

import pytest
from starlette.datastructures import Headers, UploadFile

from service.http.form_parser import FormParser

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ('filename="=?utf-8?B?w6l0w6kudHh0?="', "été.txt"),
        ("filename==?UTF-8?b?w6l0w6kudHh0?=", "été.txt"),
        ('filename="=?utf-8?Q?=C3=A9t=C3=A9_1.txt?="', "été 1.txt"),
        ('filename="=?iso-8859-1?Q?=E9t=E9.txt?="', "été.txt"),
        ('filename="=?utf-8?B?w6l0?=  =?utf-8?B?w6kudHh0?="', "été.txt"),
        ("filename*=utf-8''%C3%A9t%C3%A9%201.txt", "été 1.txt"),
        ("filename*=\"UTF-8'fr'%C3%A9t%C3%A9.txt\"", "été.txt"),
        ("filename*=ISO-8859-1''%E9t%E9.txt; filename=a.txt", "été.txt"),
        ("filename=\"=?utf-8?B?YS50eHQ=?=\"; filename*=utf-8''%C3%A9t%C3%A9.txt", "été.txt"),
        ('filename="été.txt"', "été.txt"),
        ('filename="a =?x?= ?.txt"', "a =?x?= ?.txt"),
        ("filename*=utf-8''%FF.txt; filename=a.txt", "a.txt"),
        ('filename="=?utf-8?B?a?="', "=?utf-8?B?a?="),
        ('filename="=?utf-8?B?//8=?="', "=?utf-8?B?//8=?="),
    ],
)
async def test_the_name_of_a_file_is_read_as_its_client_has_it(parameters: str, name: str) -> None:
    body = f'--b\r\nContent-Disposition: form-data; name="file"; {parameters}\r\n\r\nthe dog\r\n--b--\r\n'

    async def stream():  # type: ignore[no-untyped-def]
        yield body.encode()

    headers = Headers({"content-type": "multipart/form-data; boundary=b"})
    form = await FormParser(headers, stream()).parse()
    file = form["file"]
    assert isinstance(file, UploadFile)
    assert (file.filename, await file.read()) == (name, b"the dog")
    await form.close()
