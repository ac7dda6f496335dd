internal import NIOCore

/// A call's plan codes its messages.
extension CallPlan {
  // MARK: The request

  func encode(_ part: consuming RequestPart, forByteHooks: Bool) throws(ConnectError) -> RequestPart {
    switch consume part {
    case .whole(let head, let message):
      let bytes = try self.method.encode(
        message,
        with: self.environment.codec,
        deterministic: head.encodesDeterministically || head.isGET == true
      )
      guard forByteHooks, head.isGET == true else { return .wholeBytes(head, bytes) }
      // Byte hooks need to know whether the request will go as GET.
      var request = HTTPRequest(head: head, message: bytes)
      request.isGET = self.writer.goesAsGET(request)
      return request.part
    case .message(let message):
      return .bytes(try self.method.encode(message, with: self.environment.codec, deterministic: false))
    case .wholeBytes(let head, let bytes): return .wholeBytes(head, bytes)
    case .head(let head): return .head(head)
    case .bytes(let bytes): return .bytes(bytes)
    case .end: return .end
    }
  }

  // MARK: The response

  func decode(
    _ result: consuming ResultPart,
    _ head: @autoclosure () -> HTTPResponseHead?
  ) throws(ConnectError) -> ResultPart {
    if let parser = self.parser, let parsed = try parser.parse(result, head(), of: self.method) {
      return parsed
    }
    switch consume result {
    case .wholeBytes(let response):
      if let error = response.errorInPlaceOfMessage {
        return .whole(AnyResponse(.error(error), headers: response.headers, trailers: response.trailers))
      }
      return .whole(
        self.decode(response.message, response.headers, response.trailers, response.httpStatus)
      )
    case .bytes(let bytes): return .message(try self.decode(bytes, head()?.status))
    case .message(let message):
      return .message(try self.decode(MessageBox<ByteBuffer>.of(message).message, head()?.status))
    case .whole(let response): return .whole(response)
    case .headers(let headers): return .headers(headers)
    case .end(let error, let trailers): return .end(error, trailers: trailers)
    }
  }

  /// The response of a unary call with these bytes.
  func decode(
    _ bytes: consuming ByteBuffer,
    _ headers: Headers,
    _ trailers: Headers,
    _ httpStatus: Int?
  ) -> AnyResponse {
    do throws(ConnectError) {
      let message = try self.decode(bytes, httpStatus)
      return AnyResponse(.message(message), headers: headers, trailers: trailers)
    } catch {
      var error = error
      if error.metadata.isEmpty {
        error.metadata = headers
        error.metadata.append(contentsOf: trailers)
      }
      return AnyResponse(.error(error), headers: headers, trailers: trailers)
    }
  }

  private func decode(_ bytes: ByteBuffer, _ httpStatus: @autoclosure () -> Int?) throws(ConnectError)
    -> any AnyMessage
  {
    do throws(ConnectError) {
      return try self.method.decode(bytes, with: self.environment.codec)
    } catch {
      var error = error
      if error.httpStatus == nil { error.httpStatus = httpStatus() }
      throw error
    }
  }
}
