internal import NIOCore

/// A call's plan codes its messages.
extension CallPlan: PipelineCodec {
  // MARK: The request

  func encode(_ part: consuming RequestPart, forByteHooks: Bool) throws(ConnectError) -> RequestPart {
    switch consume part {
    case .whole(let head, let message):
      let bytes = try self.encode(message, deterministic: head.encodesDeterministically || head.isGET == true)
      guard forByteHooks, head.isGET == true else { return .wholeBytes(head, bytes) }
      // Byte hooks need to know whether the request will go as GET.
      var request = HTTPRequest(head: head, message: bytes)
      request.isGET = self.writer.goesAsGET(request)
      return request.part
    case .message(let message): return .bytes(try self.encode(message, deterministic: false))
    case .wholeBytes(let head, let bytes): return .wholeBytes(head, bytes)
    case .head(let head): return .head(head)
    case .bytes(let bytes): return .bytes(bytes)
    case .end: return .end
    }
  }

  private func encode(_ message: any AnyMessage, deterministic: Bool) throws(ConnectError) -> ByteBuffer {
    do {
      return try self.method.encode(message, self.environment.codec, deterministic)
    } catch {
      throw self.encodingFailed(error)
    }
  }

  // MARK: The response

  func decode(
    _ result: consuming ResultPart,
    _ httpStatus: @autoclosure () -> Int?
  ) throws(ConnectError) -> ResultPart {
    switch consume result {
    case .wholeBytes(let response): return .whole(self.decode(response))
    case .bytes(let bytes): return .message(try self.decode(bytes, httpStatus()))
    case .message(let message):
      return .message(try self.decode(MessageBox<ByteBuffer>.of(message).message, httpStatus()))
    case .whole(let response): return .whole(response)
    case .headers(let headers): return .headers(headers)
    case .end(let error, let trailers): return .end(error, trailers: trailers)
    }
  }

  private func decode(_ response: HTTPResponse) -> AnyResponse {
    if let error = response.error {
      return AnyResponse(.error(error), headers: response.headers, trailers: response.trailers)
    }
    if response.httpStatus == 304, response.message.readableBytes == 0 {
      let error = ConnectError.unansweredNotModified(response)
      return AnyResponse(.error(error), headers: response.headers, trailers: error.metadata)
    }
    return self.decode(response.message, response.headers, response.trailers, response.httpStatus)
  }

  /// The response of a unary call with these bytes.
  func decode(_ bytes: ByteBuffer, _ headers: Headers, _ trailers: Headers, _ httpStatus: Int?) -> AnyResponse
  {
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
    do {
      return try self.method.decode(bytes, self.environment.codec)
    } catch {
      var error = self.decodingFailed(error)
      if error.httpStatus == nil { error.httpStatus = httpStatus() }
      throw error
    }
  }

  private func encodingFailed(_ error: any Error) -> ConnectError {
    if let error = error as? ConnectError { return error }
    return ConnectError(
      code: .internalError,
      message: "the request of \(self.info.path) could not be encoded: \(error)",
      exception: error
    )
  }

  private func decodingFailed(_ error: any Error) -> ConnectError {
    error as? ConnectError
      ?? ConnectError(
        code: .internalError,
        message: "the response of \(self.info.path) could not be decoded: \(error)",
        exception: error
      )
  }
}
