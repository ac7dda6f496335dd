import Connect

/// Links Connect, and generates nothing.
@main
struct Plain {
  static func main() {
    print(ConnectError(code: .ok, message: "A program that links Connect alone runs"))
  }
}
